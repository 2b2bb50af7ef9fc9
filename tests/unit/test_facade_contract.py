"""The façade's signatures are a contract: positional names, keyword-only names and defaults."""

import inspect

import pytest

import edgewatt as ew

REQUIRED = inspect.Parameter.empty
CONTRACT = {
    "load": (["path"], {"kind": None, "orientation": "rows-are-outputs"}),
    "order": (
        ["network", "method"],
        {
            "memory": REQUIRED,
            "policy": "min",
            "pinning": "literal",
            "objective": "io",
            "seed": 0,
            "time_limit_s": None,
        },
    ),
    "count_io": (["network", "order"], {"memory": REQUIRED, "policy": "min", "pinning": "literal"}),
    "io_bounds": (["network"], {}),
    "simulate_cache": (
        ["op", "address", "size"],
        {
            "size_bytes": REQUIRED,
            "line_bytes": REQUIRED,
            "ways": REQUIRED,
            "policy": "lru",
            "write": "back",
            "allocate": True,
            "seed": 0,
        },
    ),
    "encode": (
        ["data", "encoder"],
        {"element_bytes": REQUIRED, "bus_bytes": 2, "block_bytes": 32, "state": None},
    ),
    "order_tuples": (
        ["matrix"],
        {
            "value_format": REQUIRED,
            "id_bits": 16,
            "stride": REQUIRED,
            "layout": "csr",
            "encoder": "base-xor+dbi-dc",
            "block_bytes": 32,
            "base_interval": None,
            "objective": "joint",
            "method": "local-search",
            "effort": 1.0,
            "seed": 0,
            "workers": 1,
        },
    ),
    "simulate_dram": (["address", "is_write", "arrival_cycle"], {"part": REQUIRED, "controller": None}),
    "interface_energy": (["commands"], {"part": REQUIRED, "dbi": REQUIRED}),
    "schedule": (
        ["graph"],
        {
            "objective": "peak",
            "method": "best-first",
            "rewrite": (),
            "onchip_bytes": None,
            "block_bytes": 256,
            "allocator": "exact",
            "budget_bytes": None,
            "time_limit_s": None,
        },
    ),
    "run": (["config"], {"results": None}),
    "sweep": (["config"], {"results": REQUIRED, "executor": "processes", "workers": None, "resume": True}),
}


@pytest.mark.parametrize("name", CONTRACT)
def test_signature(name: str) -> None:
    positional, keywords = CONTRACT[name]
    parameters = inspect.signature(getattr(ew, name)).parameters
    leading = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert leading[: len(positional)] == positional
    assert all(parameters[extra].default is not REQUIRED for extra in leading[len(positional) :])
    for keyword, default in keywords.items():
        assert parameters[keyword].kind is inspect.Parameter.KEYWORD_ONLY or keyword in leading, keyword
        assert parameters[keyword].default == default, keyword


def test_network_takes_its_arrays_by_name() -> None:
    network = ew.Network([0, 1], [1, 2], n_neurons=3, inputs=[0], outputs=[2])
    assert (network.weights, network.biases, network.layer, network.activation, network.batch) == (
        None,
        None,
        None,
        "relu",
        None,
    )
