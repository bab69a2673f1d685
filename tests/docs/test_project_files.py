"""Files for people who cite, join or report: they name what exists."""

import re
import tomllib

import yaml

import graycert
from support.documentation import ROOT


def read(name: str) -> dict:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_citation_is_of_this_version_and_licence():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = read("CITATION.cff")
    assert cited["version"] == graycert.__version__ == project["version"]
    assert cited["license"] == project["license"]
    assert cited["preferred-citation"]["title"] in (ROOT / "README.md").read_text(encoding="utf-8").replace("\n", " ")


def test_the_public_workflow_does_what_ci_does_on_supported_versions():
    job = read(".github/workflows/ci.yml")["jobs"]["checks"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    named = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f"Python :: {version}" in named for version in job["strategy"]["matrix"]["python"])


def test_hooks_before_a_commit_are_checks_of_the_project():
    for hook in read(".pre-commit-config.yaml")["repos"][0]["hooks"]:
        tool, *words = hook["entry"].split()
        scripts = [word for word in words if word.startswith("scripts/")]
        known = (ROOT / "scripts" / "check").read_text(encoding="utf-8")
        assert all((ROOT / script).is_file() for script in scripts)
        assert scripts or tool.removeprefix(".venv/bin/") in known


def test_issue_forms_have_a_name_a_description_and_fields():
    forms = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) == 4
    for form in forms:
        if form.stem != "config":
            held = read(str(form.relative_to(ROOT)))
            assert held["name"]
            assert held["description"]
            ids = [field["id"] for field in held["body"] if field["type"] != "markdown"]
            assert ids == list(dict.fromkeys(ids))
            for command in re.findall(r"`graycert (\w+)", str(held)):
                assert command == "explain"
