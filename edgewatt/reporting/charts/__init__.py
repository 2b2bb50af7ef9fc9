"""The charts of the report, one module each; `edgewatt.reporting.chart` says what a chart is."""
