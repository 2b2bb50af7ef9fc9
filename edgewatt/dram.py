"""DRAM parts and their energy, beside `simulate_dram`, `interface_energy` and `ControllerSpec` of `edgewatt`."""

from edgewatt.names import public

__getattr__, __all__ = public(__name__)
