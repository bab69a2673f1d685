"""A disk that fills up, files that are damaged or swapped, two drivers: what is finished stays."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.block_processes import (
    NUM_TARGETS,
    PATIENCE,
    assert_goes_on_to_its_end,
    assert_kept,
    blocks_in,
    kill,
    results,
    running,
    undisturbed,
    wait_for_blocks,
)

pytestmark = pytest.mark.processes


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Return what gives a disk some size; its content stays."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")

    def of_size(size: str) -> Path:
        subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)
        return disk

    yield of_size
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_disk_is_full_again_and_again(small_disk: Callable[[str], Path]) -> None:
    kept: dict[str, tuple[int, int]] = {}
    for size in ("400k", "600k", "724k"):
        folder = small_disk(size) / "run"
        had = len(kept)
        with running(folder) as process:
            process.join(PATIENCE)
            assert process.exitcode == 1
        kept = assert_kept(kept, folder)
        assert had < len(kept) < NUM_TARGETS
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    assert_goes_on_to_its_end(small_disk("64m") / "run", kept)


def test_a_truncated_and_two_swapped_files_are_computed_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with running(folder) as process:
        wait_for_blocks(folder, 6, process)
        kill(process)
    names = sorted(blocks_in(folder))
    first, second, third = (folder / name for name in names[:3])
    first.write_bytes(first.read_bytes()[: first.stat().st_size // 2])
    ours, theirs = second.read_bytes(), third.read_bytes()
    second.write_bytes(theirs)
    third.write_bytes(ours)
    damaged, kept = blocks_in(folder), {name: known for name, known in blocks_in(folder).items() if name in names[3:]}
    assert_goes_on_to_its_end(folder, kept)
    now = blocks_in(folder)
    assert all(now[name] != damaged[name] for name in names[:3])


def test_the_second_of_two_drivers_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with running(folder) as process:
        wait_for_blocks(folder, 3, process)
        os.kill(process.pid or 0, signal.SIGSTOP)
        kept = blocks_in(folder)
        with running(folder) as second:
            second.join(PATIENCE)
            assert second.exitcode == 2
        told = f"`folder` must be free, got {folder}, in which another process certifies"
        assert told in Path(f"{folder}.log").read_text()
        assert blocks_in(folder) == kept
        os.kill(process.pid or 0, signal.SIGCONT)
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert_kept(kept, folder)
    assert results(Path(f"{folder}.run")) == undisturbed()
