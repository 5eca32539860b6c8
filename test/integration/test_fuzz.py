"""What parses foreign input, under libFuzzer: first all inputs kept in test/fuzz/corpus, then new ones."""

import os

import pytest

from lib import ROOT, proc, seeds

pytestmark = [pytest.mark.chance, pytest.mark.needs("clang")]

SECONDS = int(os.environ.get("FUZZ_SECONDS", "2"))  # of each
CORPUS = ROOT / "test/fuzz/corpus"
TARGETS = sorted(source.stem for source in (ROOT / "test/fuzz/input").glob("*.c"))


@pytest.mark.limit(120 + SECONDS)
@pytest.mark.parametrize("target", TARGETS)
def test_foreign_input(tmp_path, target):
    program = ROOT / "build/fuzz" / target
    assert program.exists(), f"{program} is missing: run make fuzzers"
    env = {"ASAN_OPTIONS": "detect_leaks=0"}  # the symbolizer keeps its tables
    inputs = [tmp_path / "new", *[path for path in [CORPUS / target] if path.exists()]]
    inputs[0].mkdir()
    if target == "modules":
        proc.run([program, "-runs=0"], env=env | {"FUZZ_SEED": inputs[0] / "seed"}).ok()
    proc.run([program, "-runs=0", *inputs], env=env, timeout=100).ok()
    limits = [f"-seed={seeds.seed()}", "-timeout=20", "-max_len=20000", f"-artifact_prefix={tmp_path}/crash-"]
    proc.run([program, f"-max_total_time={SECONDS}", *limits, *inputs], env=env, timeout=100 + SECONDS).ok()
