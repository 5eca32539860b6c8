"""`gotrace why` of an OpenMP loop (source/why/parts.c): its threads' work has the names of the program, and uneven parts are told."""

import os
import re
import shutil

import pytest

from lib import SOURCES, proc
from test_why import findings, page, why

pytestmark = pytest.mark.measured

FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-O1", "-g"]


@pytest.fixture(scope="module", params=["gcc", "clang"])
def parts(request, tmp_path_factory):
    program = tmp_path_factory.mktemp("parts") / "parts"
    compiled = proc.run([request.param, *FLAGS, "-o", program, SOURCES / "why/parts.c"]) if shutil.which(request.param) else None
    if request.param == "clang" and not (compiled and compiled.returncode == 0) and not os.environ.get("ALL_NEEDS"):
        pytest.skip("clang with OpenMP is not here; ./scripts/deps all installs it")
    compiled.ok()
    return program


def ms(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def test_uneven_parts(parts, traced):
    """The finding names the region, the thread with most to do and the average, as the program measured them."""
    result = traced([parts]).ok()
    worked = [int(ns) / 1e6 for ns in result.stdout.split()]
    text = findings(result.trace)["imbalance"]["text"]
    said = re.match(
        r"Imbalance: the 2 threads of the parallel region in weigh_rows \(parts.c:\d+\) wait at its end for one of them\.\n"
        r"  OpenMP thread works longest, (\S+) in 2 regions; all of them (\S+) on average\.\n"
        r"  With equal parts, as by schedule\(dynamic\), the run would take up to (\d+) % less\.",
        text,
    )
    assert said, text
    assert 300 <= ms(said[1]) <= worked[1] + 20 and 180 <= ms(said[2]) <= sum(worked[:2]) / 2 + 20, (text, worked)
    assert 5 <= int(said[3]) <= 45, (text, worked)


def test_no_place_is_of_the_library(parts, traced):
    """Not even where the last thread of a region is done, and waits for the next one."""
    trace = traced([parts]).ok().trace
    assert not re.search(r"lib\w*omp", page(trace)), page(trace)
    assert re.search(r"< weigh_rows|<- weigh|weigh_rows\S* \(parts.c:", why(trace)["path"]["rows"][0]["name"]), why(trace)["path"]


def test_even_parts(parts, traced):
    result = traced([parts, "even"]).ok()
    assert "imbalance" not in findings(result.trace), page(result.trace)
