"""Verdicts on conditions as a JUnit file, which systems for continuous integration show."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from graycert.runs.conditions import Verdict


def write_junit(path: Path, verdicts: Sequence[Verdict], *, suite: str) -> None:
    """Write one test case per condition.

    Args:
        path: Where.
        verdicts: What was found.
        suite: Name of the test suite, e.g. the folder of the run.
    """
    numbers = {"tests": str(len(verdicts)), "failures": str(sum(not each.passed for each in verdicts)), "errors": "0"}
    root = ElementTree.Element("testsuites", numbers)
    cases = ElementTree.SubElement(root, "testsuite", {"name": suite, **numbers})
    for each in verdicts:
        case = ElementTree.SubElement(cases, "testcase", {"classname": suite, "name": each.condition.text})
        if not each.passed:
            ElementTree.SubElement(case, "failure", {"type": "condition", "message": str(each)})
        ElementTree.SubElement(case, "system-out").text = str(each)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
