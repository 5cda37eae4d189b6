"""Free memory: of the machine by psutil, and of a container, whose limits psutil does not know."""

import psutil
import pytest

from uppertail import capacity
from uppertail.errors import InputError


@pytest.fixture
def container(tmp_path, monkeypatch):
    """A control group that has used 3,000 bytes, 1,000 of them for files that the kernel can drop."""
    monkeypatch.setattr(capacity, "CONTAINER", tmp_path)
    (tmp_path / "memory.current").write_text("3000\n")
    (tmp_path / "memory.stat").write_text("anon 2000\ninactive_file 1000\n")
    return tmp_path / "memory.max"


def test_the_limit_of_a_container_counts(container):
    container.write_text("10000\n")
    assert capacity.free_memory() == 8000
    with pytest.raises(InputError, match=r"^It needs about 1.0 GiB of memory, and 0.0 are free: use less\.$"):
        capacity.require_memory(2**30, "It needs", "use less")


def test_without_a_limit_the_machine_counts(container):
    container.write_text("max\n")
    free = capacity.free_memory()
    assert free == pytest.approx(psutil.virtual_memory().available, rel=0.2)
