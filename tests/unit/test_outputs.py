"""Outputs: whole or absent, links stay links, pipes and devices stay what they are, inputs are not replaced."""

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from edgewatt.cli import app
from traces.base.errors import InputError
from traces.base.files import whole_file

pytestmark = pytest.mark.application

ROOT = Path(__file__).parents[2]
MATRIX = "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1.0\n1 2 2.0\n2 2 3.0\n"


def edgewatt(*arguments: str, cwd: Path, environment=(), **more) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **dict(environment)}
    command = [sys.executable, "-m", "edgewatt", *arguments]
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run(command, cwd=cwd, env=environment, text=True, timeout=120, **given)


def write(path: Path, data: bytes = b"all of it") -> None:
    with whole_file(path) as stream:
        stream.write(data)


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "dangling").symlink_to(tmp_path / "new")
    for name in ("link", "dangling"):
        write(tmp_path / name)
        assert (tmp_path / name).is_symlink() and (tmp_path / name).read_bytes() == b"all of it"
    assert (tmp_path / "target").read_bytes() == (tmp_path / "new").read_bytes() == b"all of it"


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "private").write_text("old")
    (tmp_path / "private").chmod(0o600)
    write(tmp_path / "private")
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600


def test_a_pipe_gets_the_whole_or_nothing(tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    with pytest.raises(RuntimeError), whole_file(pipe) as stream:
        stream.write(b"a part")
        raise RuntimeError
    assert reader.is_alive(), "nothing has been written"
    write(pipe)
    reader.join(10)
    assert found == [b"all of it"] and pipe.is_fifo()


def test_devices_stay_devices(tmp_path: Path) -> None:
    write(Path("/dev/null"))
    assert Path("/dev/null").is_char_device()
    with pytest.raises(InputError, match=r"/dev/full: cannot be written .No space left"):
        write(Path("/dev/full"))
    with pytest.raises(InputError, match=r"cannot be written .Is a directory"):
        write(tmp_path)


def test_json_to_dev_stdout_and_to_a_link_of_it(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/dev/stdout")
    for name in ("/dev/stdout", "out"):
        piped = edgewatt("list", "formats", "--json", name, cwd=tmp_path)
        assert piped.returncode == 0 and piped.stdout.startswith("[\n"), piped.stderr
        with (tmp_path / "file").open("w") as stream:
            stream.write("before\n")
            stream.flush()
            assert edgewatt("list", "formats", "--json", name, cwd=tmp_path, stdout=stream).returncode == 0
        assert (tmp_path / "file").read_text().startswith("before\n[\n")


@pytest.mark.parametrize("arguments", [["list", "formats"], ["list", "schema"], ["--help"], ["doctor"]])
def test_a_full_disk_behind_stdout_is_one_line(tmp_path: Path, arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = edgewatt(*arguments, cwd=tmp_path, stdout=full)
    assert done.returncode == 1
    assert done.stderr == "edgewatt: the output cannot be written (No space left on device)\n"


def test_an_input_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "w.mtx").write_text(MATRIX)
    (tmp_path / "link.mtx").symlink_to("w.mtx")
    for output in ("w.mtx", "./w.mtx", "link.mtx"):
        done = edgewatt("order-tuples", "w.mtx", "--stride", "2", "-o", output, cwd=tmp_path)
        assert done.returncode == 2 and f"{output}: is read and would be replaced" in done.stderr
    assert (tmp_path / "w.mtx").read_text() == MATRIX
    done = edgewatt("order-tuples", "w.mtx", "--stride", "2", "-o", "w.mtx", "--force", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_terminal_escapes_in_names_are_shown_not_obeyed(tmp_path: Path) -> None:
    name = "w\x1b[31m\x1b]0;title\x07.mtx"
    (tmp_path / name).write_text(MATRIX)
    done = edgewatt("order-tuples", name, "--stride", "2", cwd=tmp_path)
    assert done.returncode == 0 and "\x1b" not in done.stdout + done.stderr and "\\x1b[31m" in done.stdout
    refused = edgewatt("order-tuples", f"no{name}", cwd=tmp_path)
    assert refused.returncode == 2 and "\x1b" not in refused.stderr


RUN = (
    "network: {generate: {kind: random-layered, n_layers: 2, width: 8, density: 0.5}}\norderings: [two-optimal, auto]\n"
)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_a_character_shows_another(tmp_path: Path, encoding: str) -> None:
    """Under LC_ALL=C the line of +- ended in a traceback."""
    (tmp_path / "q.yaml").write_text(RUN + "fast_memory: {size: 8}\n")
    done = edgewatt(
        "run", "q.yaml", "-o", "r", cwd=tmp_path, environment={"PYTHONIOENCODING": encoding}, encoding=encoding
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


@pytest.mark.skipif(os.name != "posix", reason="a shell's redirections")
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize("words", ["list orderings", "run nothing.yaml"])
def test_streams_that_a_shell_closed(tmp_path: Path, closed: str, words: str) -> None:
    """Python has None in the place of such a stream, which cannot be flushed."""
    command = f"'{sys.executable}' -m edgewatt {words} {closed}"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == (2 if "nothing" in words else 0) and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("columns", ["0", "00"])
def test_a_terminal_of_no_columns_shows_tables(tmp_path: Path, columns: str) -> None:
    done = edgewatt("list", "orderings", cwd=tmp_path, environment={"COLUMNS": columns})
    assert "two-optimal" in done.stdout


@pytest.mark.parametrize(
    "words", [["run", "q.yaml", "-o", ""], ["sweep", "q.yaml", "-o", ""], ["init", "q.yaml", "-o", ""]]
)
def test_an_empty_name_is_no_folder(tmp_path: Path, words: list[str]) -> None:
    """`-o "$UNSET"` wrote into the current folder."""
    (tmp_path / "q.yaml").write_text(RUN)
    done = edgewatt(*words, cwd=tmp_path)
    assert done.returncode == 2 and "an empty name" in done.stderr, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["q.yaml"]


def test_what_is_read_while_an_output_is_written_is_named_itself(tmp_path: Path) -> None:
    """A folder, or a file without the right to read it, among the inputs is no fault of the output."""
    for name in (tmp_path, tmp_path / "nowhere.csv"):
        with pytest.raises(InputError) as caught, whole_file(tmp_path / "out") as stream:
            stream.write(name.open("rb").read())
        assert str(caught.value).startswith(f"{name}: cannot be read (") and not (tmp_path / "out").exists()


def test_an_input_without_the_right_to_read_it_is_one_line(tmp_path: Path) -> None:
    """As the superuser without the capability that passes over rights, or as anybody else."""
    (tmp_path / "b.csv").write_text("id,lower,upper,size\na,0,1,8\n")
    (tmp_path / "t.din").write_text("r 40 20\n")
    for name in ("b.csv", "t.din"):
        (tmp_path / name).chmod(0)
    drop = "-dac_override,-dac_read_search"
    without = ["setpriv", "--bounding-set", drop, "--inh-caps", drop]
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("the superuser reads everything, and setpriv is not there")
    for words in (["arena", "b.csv"], ["export", "t.din", "-f", "dinero", "-o", "out.din"]):
        command = [*(without if os.geteuid() == 0 else []), sys.executable, "-m", "edgewatt", *words]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"edgewatt: {words[1]}: cannot be read (Permission denied)\n"


@pytest.mark.parametrize(
    "words",
    [
        ["order-tuples", "m.npz", "--effort", "1000000", "-o", "no/o.npz"],
        ["order", "m.npz", "-M", "3", "--explain", "no/page.html"],
        ["order", "m.npz", "-M", "3", "--json", "no/o.json"],
        ["pays", "m.npz", "-o", "no/page.html"],
    ],
    ids=" ".join,
)
def test_an_output_that_cannot_be_written_is_said_before_the_work(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would take minutes."""
    monkeypatch.chdir(tmp_path)
    sp.save_npz("m.npz", sp.random(700, 700, 0.2, "csr", random_state=1))
    began = time.process_time()
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, InputError) and "cannot be written" in str(done.exception)
    assert time.process_time() - began < 5
