"""Configuration: strict YAML with positions, the models it fills, and the points it expands to."""

from edgewatt.config.document import ConfigError
from edgewatt.config.loading import load_run
from edgewatt.config.models import RunConfig

__all__ = ["ConfigError", "RunConfig", "load_run"]
