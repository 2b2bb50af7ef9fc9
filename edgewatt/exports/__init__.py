"""What a configuration, a trace or a network is written as for other tools: traces, waveforms, matrices, C."""

from edgewatt.exports.formats import Export, Exported, ExportRequest, export, export_formats

__all__ = ["Export", "ExportRequest", "Exported", "export", "export_formats"]
