"""The documentation names what the code has, and nothing else: commands, options, rules, keys, variables, log lines."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from pydantic import BaseModel

from tests.commands import leaves
from turnpost import __version__, config, toml_file
from turnpost.actions import results
from turnpost.cli import main
from turnpost.core import audit, outbox, registry, rules, text
from turnpost.core.errors import TurnpostError
from turnpost.demo import results as demo
from turnpost.doctor import results as doctor
from turnpost.install import Action, SettingsRefused
from turnpost.policy_file import DeliveryTable, LoopsTable, PolicyFile, RuleTable, SecretsTable

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "coordinator" / "turnpost"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
REFERENCE = (DOCS / "reference.md").read_text()
COMMON = {"--json", "--help", "-h"}
BAD_WORDS = {"sending.py": ("thread", "ref", "option"), "missions.py": ("goal", "reason")}

# Reading the code


def sources(*folders: Path) -> Iterator[str]:
    for folder in folders or (PACKAGE, ROOT / "hooks"):
        for path in sorted(folder.rglob("*.py")):
            yield path.read_text()


def delivering() -> list[Path]:
    """The product without its laboratory and the demo, which log and refuse nothing of their own."""
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if not {"lab", "demo"} & set(path.relative_to(PACKAGE).parts)
    ]


def options(command: click.Command) -> set[str]:
    return {
        name
        for param in command.params
        if isinstance(param, click.Option)
        for name in param.opts
        if name not in COMMON
    }


def literal_of(module: str, name: str) -> tuple[str, ...]:
    """The words of a `Name = Literal[...]` that stands under TYPE_CHECKING, where an import does not see it."""
    tree = ast.parse((PACKAGE / module).read_text())
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == name
        ):
            return tuple(word.value for word in ast.walk(node.value) if isinstance(word, ast.Constant))  # type: ignore[misc]
    raise AssertionError(f"{module} has no {name}")


def families(root: type[TurnpostError] = TurnpostError) -> Iterator[type[TurnpostError]]:
    yield root
    for family in root.__subclasses__():
        yield from families(family)


def refusal_rules() -> set[str]:
    assert SettingsRefused in families()  # imported, so that its family is complete
    found = {family.default_rule for family in families() if family.__module__.startswith("turnpost.")}
    for path in [*delivering(), PACKAGE / "cli" / "demo.py"]:
        found |= set(re.findall(r'\b(?:rule|RULE)\s*=\s*"([a-z-]+)"', path.read_text()))
        found |= {
            f"bad-{what}" for what in BAD_WORDS.get(path.name, ()) if 'rule=f"bad-{what}"' in path.read_text()
        }
    # A wait tells its two rules as words of its own.
    assert '"ended" if result.over' in (PACKAGE / "cli" / "render.py").read_text()
    return found | {"ended"}


def log_lines() -> dict[str, set[str]]:
    """Each action that is logged, with what stands beside it besides what all of its kind have."""
    found: dict[str, set[str]] = {}
    for path in delivering():
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr not in ("write", "moved", "acted"):
                continue
            given = {keyword.arg for keyword in node.keywords if keyword.arg}
            for word in node.args[:2]:
                # Nothing else that is written bears a name: files are written to paths, streams get sentences.
                if isinstance(word, ast.Constant) and re.fullmatch(r"[a-z-]+", str(word.value)):
                    found.setdefault(str(word.value), set()).update(given)
                elif ast.unparse(word).startswith("audit.STEPS["):
                    for step in set(audit.STEPS.values()) - {"claim"}:
                        found.setdefault(step, set()).update(given)
    return found


# Reading the pages


def section(title: str, page: str = REFERENCE) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}$\n(.*?)(?=^#{{1,6}} |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"docs/reference.md has no heading '{title}'"
    level = len(found[1])
    start = found.start(2)
    end = re.search(rf"^#{{1,{level}}} ", page[start:], re.MULTILINE)
    return page[start : start + end.start()] if end else page[start:]


def rows(part: str) -> list[list[str]]:
    lines = [line for line in part.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if not set(row[0]) <= {"-", " "}][1:]


def words(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```$", "", cell, flags=re.MULTILINE | re.DOTALL)))


def first_column(title: str) -> set[str]:
    return {word for row in rows(section(title)) for word in words(row[0])}


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        yield found[1], found[2]


def anchors(page: Path) -> set[str]:
    titles = re.findall(
        r"^#+ (.*)$",
        re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL),
        re.MULTILINE,
    )
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("no git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


# Commands


def test_every_command_has_a_section_and_every_section_a_command() -> None:
    assert set(re.findall(r"^### turnpost (.*)$", REFERENCE, re.MULTILINE)) == set(leaves())


@pytest.mark.parametrize("name", sorted(leaves()))
def test_a_section_has_exactly_the_options_of_its_command(name: str) -> None:
    documented = {word for row in rows(section(f"turnpost {name}")) for word in words(row[0])}
    assert documented == options(leaves()[name])


@pytest.mark.parametrize("name", sorted(leaves()))
def test_a_section_tells_the_defaults(name: str) -> None:
    for row in rows(section(f"turnpost {name}")):
        option = next(p for p in leaves()[name].params if row[0].strip("`") in p.opts)
        if isinstance(option.default, (str, float)) and not isinstance(option.default, bool):
            assert str(option.default) in row[1].strip("`")


def test_the_choices_of_options_are_named() -> None:
    for name, command in leaves().items():
        for param in command.params:
            if isinstance(param.type, click.Choice) and isinstance(param, click.Option):
                assert set(param.type.choices) <= words(section(f"turnpost {name}")) | words(REFERENCE), name


def examples() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for page in PAGES:
        for language, code in blocks(page):
            if language in ("sh", "console"):
                lines = (line.removeprefix("$ ").strip() for line in code.splitlines())
                found += [
                    (page.name, line) for line in lines if "turnpost " in line and not line.startswith("#")
                ]
    return found


@pytest.mark.parametrize(("page", "line"), examples())
def test_an_example_is_a_command_that_parses(page: str, line: str) -> None:
    for called in re.findall(r"(?:^|[|(;] *|&& )turnpost ((?:\"[^\"]*\"|'[^']*'|[^|)<>;\n])*)", line):
        given = shlex.split(called.partition(" || ")[0])
        if given == ["--version"]:
            continue
        name = next(name for name in leaves() if given[: name.count(" ") + 1] == name.split())
        rest = given[name.count(" ") + 1 :]
        rest = ["x" if word == "-" else word for word in rest]
        leaves()[name].make_context(name, rest, parent=click.Context(main, **main.context_settings))


# Tables


def test_every_config_key_is_documented_with_its_default_and_range() -> None:
    told = {row[0].strip("`"): row[1:4] for row in rows(section("config.toml"))}
    ranges: dict[str, tuple[float, float]] = config._RANGES
    assert set(told) == set(ranges) == {field.name for field in fields(config.Config)}
    for key, (default, low, high) in told.items():
        assert [float(default), float(low), float(high)] == [getattr(config.Config(), key), *ranges[key]], key


def test_every_policy_key_is_documented_with_its_default() -> None:
    told = {word: row[1].strip("`") for row in rows(section("policy.toml")) for word in words(row[0])}
    tables: dict[str, type[BaseModel]] = {
        "": RuleTable,
        "loops.": LoopsTable,
        "delivery.": DeliveryTable,
        "secrets.": SecretsTable,
    }
    known = {
        prefix + (field.alias or name): ""
        if field.is_required() or field.default in (None, (), {})
        else str(field.default)
        for prefix, table in tables.items()
        for name, field in table.model_fields.items()
    }
    assert {key: default.lower() for key, default in told.items() if key != "key"} == {
        key: default.lower() for key, default in known.items()
    }


def test_every_rule_is_documented_and_every_documented_rule_exists() -> None:
    told = first_column("Refusals and failures")
    known = refusal_rules() | {"usage", "interrupted", "platform", "io"}
    assert told == known


def test_a_rule_is_documented_with_its_exit_code() -> None:
    codes = {row[0].strip("`"): row[1] for row in rows(section("Refusals and failures"))}
    for family in families():
        if family.__module__.startswith("turnpost."):
            assert codes[family.default_rule] == str(family.exit_code), family
    assert set(codes.values()) | {"0"} == {row[0] for row in rows(section("Exit codes"))}


def test_every_variable_of_ours_is_documented() -> None:
    found = {name for code in sources() for name in re.findall(r'\b(_?TURNPOST_[A-Z_]+[A-Z])"', code)}
    found |= {name for code in sources() for name in re.findall(r"\$(TURNPOST_[A-Z_]+[A-Z])", code)}
    assert first_column("Environment variables") == found


def test_every_log_line_is_documented_with_what_it_carries() -> None:
    told = {action: words(row[2]) for row in rows(section("Log")) for action in words(row[0])}
    assert told == log_lines()
    assert set(told) == set(audit.ACTIONS)


def test_what_all_lines_about_somebody_carry_is_documented(tmp_path: Path) -> None:
    root = str(tmp_path)
    person, agent = registry.party(registry.unsaved_person()), "ag-x"
    message = outbox.compose(person, [{"kind": "agent", "name": "alpha", "key": agent}], "x")
    audit.moved(root, "claim", message, agent)
    (line,) = (tmp_path / "turnpost.log").read_text().splitlines()
    assert set(json.loads(line)) <= words(section("Log"))


def test_states_boundaries_and_kinds_are_documented() -> None:
    concepts = (DOCS / "concepts.md").read_text()
    told = words(REFERENCE) & words(concepts)
    for name in ("Boundary", "Doing", "Progress"):
        assert set(literal_of("core/records.py", name)) <= told, name
    assert set(literal_of("core/records.py", "Kind")) <= words(section("JSON"))
    named = {row[0].strip("`") for row in rows(section("Boundaries", concepts))}
    assert named == {*literal_of("core/records.py", "Boundary"), "inbox"}
    assert {row[0].strip("`") for row in rows(section("Who is who", concepts))} == set(
        literal_of("core/records.py", "Doing")
    )
    assert {row[0].strip("`") for row in rows(section("The life of a message", concepts))} == set(
        literal_of("core/records.py", "Progress")
    )


def test_timers_are_documented_as_they_are() -> None:
    told = {row[0].strip("`"): row[1] for row in rows(section("Timers and limits"))}
    known = {
        name: value
        for name, value in vars(rules).items()
        if name.isupper() and isinstance(value, (int, float))
    }
    known.pop("TYPE_CHECKING")
    assert {name: float(value) for name, value in told.items()} == known


def test_every_hook_is_documented() -> None:
    template: dict[str, Any] = json.loads((ROOT / "settings-templates" / "hooks.json").read_text())["hooks"]
    installed = {
        (event, Path(entry["args"][-2]).name)
        for event, groups in template.items()
        for g in groups
        for entry in g["hooks"]
    }
    told = {(event, row[1].strip("`")) for row in rows(section("Hooks")) for event in words(row[0])}
    assert told == installed
    assert {script for _, script in told} == {path.name for path in (ROOT / "hooks").glob("*.py")}


def test_every_finding_of_the_doctor_is_documented() -> None:
    known: set[str] = set()
    for path in (PACKAGE / "doctor").glob("*.py"):
        code = path.read_text()
        named = re.search(r'^NAME = "(.*)"', code, re.MULTILINE)
        known |= set(re.findall(r'\b(?:ok|warn|fail)\(\s*"([a-z ]+)",\s', code)) | (
            {named[1]} if named else set()
        )
    page = (DOCS / "troubleshooting.md").read_text()
    assert {word for row in rows(section("Doctor", page)) for word in words(row[0])} == known


DOCUMENTS = {
    "installed file": results.InstalledFile, "roster": results.Roster, "peer": results.Peer, "taken back": results.TakenBack,
    "sent": results.Sent, "recipient": results.Recipient, "message": results.MessageView, "receipt": results.ReceiptView,
    "cancelled": results.Cancelled, "subagent": results.SubagentView, "agent": results.AgentView, "waited": results.Waited, "launched": results.Launched,
    "mission": results.MissionView, "seat": results.Seat, "missions": results.Missions, "verdict": results.PolicyVerdict,
    "summary": results.Summary, "log": results.Log, "entry": results.Entry, "renamed": results.Renamed, "held": results.Held, "woken": results.Woken, "inbox": results.Inbox,
    "thread line": results.ThreadLine, "thread": results.Thread, "found": results.Found,
    "installed": results.Installed, "coordinator": results.CoordinatorView, "completion": results.Completion, "demo": demo.Shown,
    "delivery": demo.Delivery, "diagnosis": doctor.Diagnosis, "check": doctor.Check, "failure": demo.Failure,
}  # fmt: skip


def test_a_tool_is_documented_with_what_it_takes_gives_and_changes() -> None:
    from turnpost.tools import arguments, calls

    told = {row[0].strip("`"): row[1:] for row in rows(section("Tools"))}
    assert list(told) == [tool.name for tool in calls.TOOLS]
    given = {kind: name for name, kind in DOCUMENTS.items()}
    for tool in calls.TOOLS:
        takes, gives, hints = told[tool.name]
        fields = set(arguments.schema(tool.takes)["properties"])
        assert words(takes) - {"parent", "person"} == fields, tool.name
        assert given[tool.gives] in gives
        assert hints == ("reads only" if tool.reads else "takes away" if tool.undoes else "changes")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_json_document_is_documented_with_all_its_fields(name: str) -> None:
    told = {row[0]: words(row[2]) for row in rows(section("JSON"))}
    extra = {"error"} if name == "waited" else set(get_args(Action)) if name == "installed" else set()
    known = {field.rstrip("_") for field in DOCUMENTS[name]._fields}  # type: ignore[attr-defined]
    assert told[name] - extra == known - {"inbox"} or told[name] == known | {"inbox"}


def test_the_folders_of_a_home_and_the_reserved_names_are_documented() -> None:
    told = " ".join(first_column("Files"))
    for folder in registry.LAYOUT:
        assert f"{folder}/" in told, folder
    assert words(REFERENCE) >= text.RESERVED


def test_the_module_map_names_every_module_of_the_core_and_the_service() -> None:
    page = (DOCS / "architecture.md").read_text()
    for folder in ("core", "service"):
        there = {
            f"{folder}/{path.name}" for path in (PACKAGE / folder).glob("*.py") if path.name != "__init__.py"
        }
        assert set(re.findall(rf"`({folder}/\w+\.py)`", section("Module map", page))) == there


def test_imports_point_the_way_the_architecture_says() -> None:
    above = {
        "core": (
            "cli",
            "tools",
            "demo",
            "doctor",
            "actions",
            "service",
            "install",
            "lab",
            "harness",
            "config",
            "policy",
            "redaction",
            "detector",
        ),
        "service": ("cli", "tools", "tools", "demo", "doctor", "actions", "lab"),
        "tools": ("cli", "demo", "doctor", "lab"),
        "install": ("cli", "tools", "tools", "demo", "doctor", "actions", "service", "lab", "harness"),
        "actions": ("cli", "tools", "tools", "demo", "doctor", "lab"),
        "lab": ("cli", "demo", "doctor", "actions", "service", "install"),
    }
    for folder, forbidden in above.items():
        for path in (PACKAGE / folder).rglob("*.py"):
            code = path.read_text()
            wrong = [
                name
                for name in forbidden
                if re.search(rf"^\s*(?:from|import) turnpost\.{name}\b", code, re.MULTILINE)
            ]
            wrong += [
                name
                for name in forbidden
                if re.search(rf"^\s*from turnpost import .*\b{name}\b", code, re.MULTILINE)
            ]
            assert not wrong, f"{path} imports {wrong}"


# The pages themselves


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.is_file(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(there), f"{page.name}: {target}"


def test_every_page_is_on_the_map() -> None:
    index = (DOCS / "index.md").read_text()
    for page in DOCS.glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index


def test_make_targets_in_the_pages_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        word
        for page in PAGES
        for language, code in blocks(page)
        if language == "sh"
        for word in re.findall(r"^make ([a-z-]+)", code, re.MULTILINE)
    }
    assert {"demo", "test"} <= named <= targets


def test_blocks_of_json_toml_and_python_can_be_read() -> None:
    import tomllib

    for page in PAGES:
        for language, code in blocks(page):
            if language == "json":
                json.loads(code)
            elif language == "toml":
                found = tomllib.loads(code)
                if not set(found) <= set(config._RANGES):
                    toml_file.validated(page.name, "policy", PolicyFile, found)
            elif language == "python":
                compile(code, page.name, "exec")


def test_the_changelog_begins_with_this_version() -> None:
    found = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert found
    assert found[1] in (__version__, "Unreleased")


def test_the_tested_versions_are_named() -> None:
    from turnpost.lab.fetch import TESTED

    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", DOCS / "architecture.md"):
        for version in TESTED:
            assert version in page.read_text(), (page.name, version)


def test_no_tracked_file_names_a_registry_or_a_path_of_one_machine() -> None:
    # Put together here, so that this file is none that it looks for.
    hosts = ["pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "npmjs" + ".com", "yarnpkg" + ".com"]
    machine = re.compile(r"(?<![\w.\-}\])$])/(?:root|work)(?:/|(?![\w-]))|/tmp/" + r"tp-[a-z0-9_]{8}\b")
    for path in tracked():
        try:
            content = path.read_text()
        except UnicodeDecodeError:
            continue
        name = path.relative_to(ROOT)
        assert not [host for host in hosts if host in content], name
        assert not machine.search(content), f"{name}: {machine.search(content)}"
