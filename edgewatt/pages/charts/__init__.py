"""The charts of the report, one module each; `edgewatt.pages.chart` says what a chart is."""
