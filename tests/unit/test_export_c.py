"""C files of networks: compiled and run here, and where the tools are, for Cortex-M4, RISC-V and AArch64."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from edgewatt.cli import app
from hwmodel.processor.export_c import export_c
from hwmodel.processor.inference import compile_inference
from hwmodel.processor.work import ordered_work
from tests.oracles.random_networks import random_order
from traces.base.errors import InputError
from traces.generators.networks import random_layered
from traces.generators.radixnet import radix_net
from traces.networks.network import Network
from traces.networks.quantization import to_bytes
from traces.readers.native import save

pytestmark = pytest.mark.application

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-ffp-contract=off"]
HOST = (["gcc"], [])
MACHINES = {
    "host": HOST,
    "host-plain": (["gcc", "-O0", "-fsanitize=undefined,address", "-fno-sanitize-recover"], []),
    "cortex-m4": (
        ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16",
         "--specs=rdimon.specs", "-Wl,--section-start=.vectors=0", "start.c"],
        ["qemu-system-arm", "-machine", "mps2-an386", "-nographic", "-semihosting", "-kernel"]),
    "riscv64": (["riscv64-linux-gnu-gcc", "-static"], ["qemu-riscv64"]),
    "aarch64": (["aarch64-linux-gnu-gcc", "-static"], ["qemu-aarch64"]),
}  # fmt: skip

# What a Cortex-M4 needs before main: a stack and a reset vector, and the floating-point unit switched on.
START = """
#include <stdint.h>
extern void _start(void);
static void reset(void) { *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; _start(); for (;;) {} }
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[] = {0x00300000u, (uintptr_t)reset};
"""

MAIN = """
#include <stdio.h>
{declaration}
int main(void) {{
    static const {kind} in[{rows}][{inputs}] = {{ {numbers} }};
    for (int b = 0; b < {rows}; b++) {{
        {out} y[{outputs}];
        {name}_run(in[b], y);
        for (int i = 0; i < {outputs}; i++) printf("{format}\\n", {value});
    }}
    return 0;
}}
"""


def run_c(source: str, batch: np.ndarray, n_outputs: int, int8: bool, machine: str, folder: Path) -> np.ndarray:
    """Compile the file alone (it needs no header but stdint.h), link it to a small program, return what that prints."""
    compiler, emulator = MACHINES[machine]
    for tool in (compiler[0], *emulator[:1]):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    out, kind = ("int32_t", "uint8_t") if int8 else ("float", "float")
    (folder / "net.c").write_text(source)
    (folder / "start.c").write_text(START)
    (folder / "main.c").write_text(
        MAIN.format(
            declaration=f"#include <stdint.h>\nvoid network_run(const {kind} *, {out} *);", kind=kind, out=out,
            rows=len(batch), inputs=batch.shape[1], outputs=n_outputs, name="network",
            numbers=", ".join("{" + ", ".join(map(str if int8 else float.hex, row)) + "}" for row in batch.tolist()),
            format="%ld" if int8 else "%.9g", value="(long)y[i]" if int8 else "(double)y[i]",
        )
    )  # fmt: skip
    program = folder / "program"
    subprocess.run([*compiler, *STRICT, "net.c", "main.c", "-o", str(program)], check=True, cwd=folder)
    printed = subprocess.run([*emulator, str(program)], check=True, capture_output=True, text=True, timeout=60).stdout
    return np.array([float(x) for x in printed.split()]).reshape(len(batch), n_outputs)


def whole_network() -> tuple[Network, np.ndarray, np.ndarray]:
    network = random_layered(4, 30, 0.3, seed=2, n_outputs=3)
    rng = np.random.default_rng(3)
    network = network.with_(
        weights=rng.integers(-3, 4, network.n_connections), biases=rng.integers(-3, 4, network.n_neurons)
    )
    batch = rng.integers(0, 4, (5, 30)).astype(np.float32)
    return network.with_(batch=batch), batch, random_order(network, rng)


@pytest.mark.parametrize("machine", MACHINES)
def test_whole_numbers_are_exact_on_every_machine(machine: str, tmp_path: Path) -> None:
    network, batch, order = whole_network()
    got = run_c(export_c(network, order), batch, 3, False, machine, tmp_path)
    np.testing.assert_array_equal(got, compile_inference(network, order).run(batch))


@pytest.mark.parametrize("lanes", [2, 3, 16, 48])
def test_lanes_are_as_many_vectors_one_after_the_other(lanes: int, tmp_path: Path) -> None:
    network, _, order = whole_network()
    batch = np.random.default_rng(lanes).integers(0, 4, (lanes, 30)).astype(np.float32)
    for machine in ("host", "host-plain"):
        got = run_c(export_c(network, order, lanes=lanes), batch.reshape(1, -1), 3 * lanes, False, machine, tmp_path)
        np.testing.assert_array_equal(got.reshape(lanes, 3), compile_inference(network, order).run(batch))
    with pytest.raises(InputError, match="lanes are for float32"):
        export_c(network, dtype="int8", lanes=2)


@pytest.mark.parametrize("machine", MACHINES)
def test_int8_sums_are_bit_exact_on_every_machine(machine: str, tmp_path: Path) -> None:
    network = random_layered(4, 30, 0.3, seed=2, n_outputs=3)
    order = random_order(network, np.random.default_rng(0))
    made = compile_inference(network, order, dtype="int8")
    q = made._integers.quantized
    assert q is not None and network.batch is not None
    bytes_in = to_bytes(network.batch, q.scale[network.inputs], q.zero[network.inputs])
    got = run_c(export_c(network, order, dtype="int8"), bytes_in.astype(int), 3, True, machine, tmp_path)
    expected = (got * q.sum_scale[network.outputs].astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(made.run(network.batch), expected)


def test_clipped_relu_and_reals(tmp_path: Path) -> None:
    network = radix_net([[2, 2, 2]], blocks=2)
    batch = np.random.default_rng(0).random((4, 8)).astype(np.float32)
    got = run_c(export_c(network), batch, 8, False, "host", tmp_path)
    np.testing.assert_allclose(got, compile_inference(network).run(batch), rtol=1e-6)


def test_the_file_states_its_memory_and_names_nothing_else() -> None:
    network = random_layered(6, 40, 0.2, seed=1)
    text = export_c(network, name="tiny")
    assert text.count("#include") == 1 and "#include <stdint.h>" in text
    arena = 4 * ordered_work(network, None).rows(keep_all=False, apart=False)[1]
    assert f"tiny_ARENA_BYTES {arena}" in text and arena < 4 * network.n_neurons  # rows are used again
    hostile = export_c(network.with_(name="*/ int x; /*"))
    assert "*/ int x" not in hostile


def test_what_export_refuses() -> None:
    network = random_layered(3, 10, 0.3)
    with pytest.raises(InputError, match="not a C identifier"):
        export_c(network, name="a b")
    with pytest.raises(InputError, match="float32"):
        export_c(network, dtype="bf16")
    with pytest.raises(InputError, match=r"needs a calibration.*: save the network with such a batch"):
        export_c(network.with_(batch=None), dtype="int8")


def test_export_from_the_command_line(tmp_path: Path) -> None:
    save(random_layered(3, 10, 0.3), tmp_path / "net.npz")
    for arguments in (["configs/examples/quickstart.yaml"], [str(tmp_path / "net.npz"), "--dtype", "int8"]):
        out = tmp_path / "out.c"
        done = CliRunner().invoke(app, ["export", *arguments, "-f", "c", "-o", str(out)])
        assert done.exit_code == 0, done.output
        assert "_ARENA_BYTES" in out.read_text() and "bytes of memory" in done.output


def test_a_simple_blocking_says_its_numbers(tmp_path: Path) -> None:
    save(random_layered(3, 30, 0.3), tmp_path / "net.npz")
    arguments = [
        "export",
        str(tmp_path / "net.npz"),
        "-f",
        "c",
        "-s",
        "orderings=[tiles]",
        "-s",
        "fast_memory.size=9",
    ]
    done = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "out.c")])
    assert done.exit_code == 0, done.output
    first = (tmp_path / "out.c").read_text().partition("\n")[0]
    assert re.fullmatch(
        r"/\* order: tiles, made for M = 9, targets: \d+, sources: \d+, outer: (targets|sources) \*/", first
    )


def test_an_order_from_a_file_is_said_to_be_of_it_alone(tmp_path: Path) -> None:
    """It was said to be made for the M and the machine of the configuration."""
    save(network := random_layered(3, 30, 0.3), tmp_path / "net.npz")
    np.save(tmp_path / "mine.npy", np.arange(network.n_connections))
    order = f"orderings=[{{kind: file, path: {tmp_path / 'mine.npy'}}}]"
    for more in ([], ["-s", "measure=all", "-s", "system=scratchpad-8k"]):
        arguments = ["export", str(tmp_path / "net.npz"), "-f", "c", "-s", order, *more, "-o", str(tmp_path / "out.c")]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        assert (tmp_path / "out.c").read_text().startswith("/* order: mine.npy */\n")


def test_a_name_that_looks_like_the_file_s_own_words(tmp_path: Path) -> None:
    save(random_layered(3, 10, 0.3).with_(name="x_ARENA_BYTES y */ #define z_ARENA_BYTES 7"), tmp_path / "net.npz")
    done = CliRunner().invoke(
        app, ["export", str(tmp_path / "net.npz"), "-f", "c", "-o", str(tmp_path / "o.c"), "--json", "-"]
    )
    assert done.exit_code == 0, done.exception
    written = (tmp_path / "o.c").read_text()
    assert f"#define network_ARENA_BYTES {json.loads(done.stdout)['arena_bytes']}\n" in written
    assert json.loads(done.stdout)["arena_bytes"] != 7


@pytest.mark.parametrize("weight", [1.0, 3e38, 1e-45, 0.0])
@pytest.mark.parametrize("given", [1.0, 0.0, 3e38, 1e-45, np.nan, np.inf])
def test_numbers_at_the_ends_of_float32_compile_or_are_refused(weight: float, given: float, tmp_path: Path) -> None:
    """Scales became nan, which is not C; compiled inference computed with them."""
    network = Network(
        np.array([0, 0, 1, 1]), np.array([3, 4, 3, 4]), 5, [0, 1, 2], [3, 4], np.array([weight, 1, -1, weight], "f4"),
        np.zeros(5, "f4"),
    )  # fmt: skip
    calibration = np.full((2, 3), given, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            made = compile_inference(network, dtype="int8", calibration=calibration)
            text = export_c(network, dtype="int8", calibration=calibration)
        except InputError as error:
            assert "no finite number" in str(error) or "are finite numbers" in str(error) or "beside" in str(error)
            return
        assert np.isfinite(made.run(np.ones((1, 3), np.float32))).all()
    assert np.isfinite(given) and "nanf" not in text and "inff" not in text
