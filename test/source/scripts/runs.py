# What begins each made-up file of tests: `run` says how often its caller has run, this time included.
import os, pathlib, pytest
def run():
    file = pathlib.Path(os.environ["PYTEST_CURRENT_TEST"].split("::")[1].split("[")[0].split(" ")[0] + ".runs")
    file.write_text(file.read_text() + "." if file.exists() else ".")
    return len(file.read_text())
