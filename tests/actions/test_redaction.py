"""Secrets: which are found, which texts are left alone, what the person's policy adds, and what the check costs."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import detect_secrets.plugins
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.actions.fakes import FOREIGN, PERSON, FakeHome
from turnpost import detector, policy, redaction
from turnpost.actions import agents, holding, launching, missions, receipts, sending
from turnpost.core import mailbox, text
from turnpost.core.errors import UsageError
from turnpost.core.sender import Speaker
from turnpost.redaction import Redacted, Secrets, redact

ALWAYS = Secrets()


def b64(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


JWT = f"{b64({'alg': 'HS256'})}.{b64({'sub': '1'})}.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
FOUND = [
    ("use AKIAIOSFODNN7EXAMPLE.", "use [redacted: AWS Access Key]."),
    ("aws_secret_access_key = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'", "aws_secret_access_key = '[redacted: AWS Access Key]'"),
    (f"ghp_{'a1B2' * 9}", "[redacted: GitHub Token]"),
    (f"a github_pat_{'A1' * 15} b", "a [redacted: GitHub Token] b"),
    ("glpat-abcdefghij0123456789", "[redacted: GitLab Token]"),
    ("key sk-ant-api03-abcdefghijklmnop_-12 end", "key [redacted: Anthropic Key] end"),
    (f"sk-proj-{'a1' * 12}", "[redacted: OpenAI Token]"),
    (f"AIza{'x' * 35}", "[redacted: Google API Key]"),
    (f"hf_{'aB' * 17}", "[redacted: Hugging Face Token]"),
    (f"npm_{'a1' * 18}", "[redacted: NPM tokens]"),
    (f"{'xo' + 'xb'}-1234567890-abcdefghij", "[redacted: Slack Token]"),
    (f"{'sk_' + 'live_'}{'a1' * 12}", "[redacted: Stripe Access Key]"),
    (f"a {JWT}, b", "a [redacted: JSON Web Token], b"),
    ("postgres://bob:s3cret@host/db", "postgres://bob:[redacted: Basic Auth Credentials]@host/db"),
    ('password = "hunter2"', 'password = "[redacted: Secret Keyword]"'),
    ("export DB_PASSWORD=hunter2x9 && run", "export DB_PASSWORD=[redacted: Secret Keyword] && run"),
    ("api_key: a1b2c3d4e5", "api_key: [redacted: Secret Keyword]"),
    ("curl -H 'Authorization: Bearer abcdef123456'", "curl -H 'Authorization: Bearer [redacted: Authorization]'"),
    (
        "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb\nnNza\n-----END OPENSSH PRIVATE KEY-----\nb",
        "a\n[redacted: Private Key]\nb",
    ),
    ("-----BEGIN PRIVATE KEY-----\ncut off", "[redacted: Private Key]"),
    ("aws_secret_access_key = wJalrXUtnFEMI/" + "K7MDENG/bPxRfiCYEXAMPLEKEY", "aws_secret_access_key = [redacted: Secret Keyword]"),
    ("GITHUB_TOKEN = abc123def456", "GITHUB_TOKEN = [redacted: Secret Keyword]"),
    (f"GITHUB_TOKEN = ghp_{'a1B2' * 9}", "GITHUB_TOKEN = [redacted: GitHub Token]"),
    ("X-Api-Key: a1b2c3d4e5", "X-Api-Key: [redacted: Secret Keyword]"),
    ("{'X-Auth-Token': 'a1b2c3d4e5'}", "{'X-Auth-Token': '[redacted: Secret Keyword]'}"),
    ("run --api-key=a1b2c3d4e5f6 now", "run --api-key=[redacted: Secret Keyword] now"),
    ("secret-key: k3yk3yk3y", "secret-key: [redacted: Secret Keyword]"),
    ("client_secret=abc123$def456", "client_secret=[redacted: Secret Keyword]"),
    ("PGPASSWORD=letmein psql", "PGPASSWORD=[redacted: Secret Keyword] psql"),
    ("MYSQL_PWD=letmein", "MYSQL_PWD=[redacted: Secret Keyword]"),
    ("mysql --password=letmein -u root", "mysql --password=[redacted: Secret Keyword] -u root"),
    ("password=hunter2", "password=[redacted: Secret Keyword]"),
    ("password='correct horse'", "password='[redacted: Secret Keyword]'"),
    ('passphrase = "correct horse"', 'passphrase = "[redacted: Secret Keyword]"'),
    ("send Bearer abc123def456ghi789 along", "send Bearer [redacted: Authorization] along"),
    ("Cookie: session=abcdef123456; theme=dark-mode", "Cookie: session=[redacted: Cookie]"),
    ("curl -H 'Cookie: a=1; session=abcdef'", "curl -H 'Cookie: a=[redacted: Cookie]'"),
    ("Set-Cookie: sid=abc123def; Path=/; HttpOnly", "Set-Cookie: sid=[redacted: Cookie]; Path=/; HttpOnly"),
    (f"{'GOCS' + 'PX-'}{'aB3-' * 7}", "[redacted: Google OAuth Secret]"),
    (f"{'ya' + '29.'}{'aB3-' * 7}", "[redacted: Google OAuth Token]"),
    (f"{'dop_' + 'v1_'}{'a1' * 32}", "[redacted: DigitalOcean Token]"),
    (f"{'shp' + 'at_'}{'a1' * 16}", "[redacted: Shopify Token]"),
    (f"{'hv' + 's.'}{'aB3-' * 7}", "[redacted: Vault Token]"),
    (f"{'whs' + 'ec_'}{'aB3x' * 7}", "[redacted: Stripe Webhook Secret]"),
]  # fmt: skip
LEFT = [
    "the secret is patience; token: see the docs",
    "commit 8f14e45fceea167a5a36dedd4bea2543f6f1d0aa, session 0f8fad5b-d9cb-469f-a165-70867728950e",
    "msg-01JD3QK8V5T0YF6Z2M9XWB4C7R is read",
    "verify(token=config.token), max_tokens=10000000",
    'password = "${DB_PASSWORD}" and password = "<your password>"',
    'if "password": "please see the vault"',
    "https://example.org/a?b=c#d, mailto:bob@example.org, 192.0.2.7",
    "secret = get_secret('prod')",
    "[redacted: Secret Keyword] was there",
    'password = "[redacted: Secret Keyword]"',
    "def login(user: str, password: str, token: Optional[str] = None) -> None:",
    "token = get_token()\ntoken = tokens2[0]\nsecret_key = base64.b64decode(x)\ntoken = secrets.token_hex(16)",
    "token = config.v2.token; connect(password=settings.db2.password), self.password = password",
    "the secret: be kind; key=value; api_key: ...; password: required, 8 characters",
    "password=$PASSWORD PASSWORD=$(cat f) PASSWORD=${PW} PASSWORD=<your password> --password=PASSWORD",
    "PWD=/home/me/x1 OLDPWD=/tmp PASSWORD_FILE=/run/secrets/db1 SECRET_NAME=prod-db-2024",
    "api_key=os.getenv('X1'), os.environ['API_KEY'], token: {{ token2 }}, secret=get_secret1()",
    "token: https://example.org/v2/token, token_id: msg-01JD3QK8V5T0YF6Z2M9XWB4C7R, max_tokens = 4096",
    "a Bearer token in prose, the Bearer authentication scheme, Authorization: Bearer <token> or $TOKEN",
    "Cookie: session=... or session=<value>, Cookie: session=$SESSION_COOKIE, the cookie: yes",
    "password = input('your password: ') or f'{user} x'; password = '${A} and b'; placeholder='the password'",
]


@pytest.mark.parametrize(("given_", "wanted"), FOUND)
def test_a_secret_is_taken_out_and_named(given_: str, wanted: str) -> None:
    assert redact(given_, ALWAYS, {}) == Redacted(wanted, 1)


@pytest.mark.parametrize(("given_", "wanted"), FOUND)
def test_what_was_taken_out_stays_out_and_is_not_counted_again(given_: str, wanted: str) -> None:
    assert redact(wanted, ALWAYS, {}) == Redacted(wanted, 0)


@pytest.mark.parametrize("words", LEFT)
def test_what_agents_write_all_day_is_left_alone(words: str) -> None:
    assert redact(words, ALWAYS, {}) == Redacted(words)


def test_each_secret_of_a_text_counts_and_the_rest_stands_letter_for_letter() -> None:
    body = f"  one AKIAIOSFODNN7EXAMPLE\n\ttwo ghp_{'a1B2' * 9}\n\nAKIAIOSFODNN7EXAMPLE \n"
    found = redact(body, ALWAYS, {})
    assert found.taken == 3
    assert found.text == (
        "  one [redacted: AWS Access Key]\n\ttwo [redacted: GitHub Token]\n\n[redacted: AWS Access Key] \n"
    )


def test_values_of_named_variables_are_taken_out_wherever_they_stand() -> None:
    secrets = Secrets(variables=("DATABASE_URL", "*_TOKEN"))
    environment = {
        "DATABASE_URL": "db://plain", "MY_TOKEN": "correct horse", "B_TOKEN": "short", "E_TOKEN": "", "HOME": "/home/me",
    }  # fmt: skip
    found = redact("db://plain, correct horse; short; /home/me; db://plain", secrets, environment)
    assert found == Redacted(
        "[redacted: DATABASE_URL], [redacted: MY_TOKEN]; short; /home/me; [redacted: DATABASE_URL]", 3
    )


def test_the_persons_own_patterns_are_taken_out() -> None:
    secrets = Secrets(patterns=(("customer", "CUST-[0-9]{6}"), ("x", "y*(?=z)")))
    assert redact("CUST-123456 and CUST-12 z", secrets, {}) == Redacted(
        "[redacted: customer] and CUST-12 z", 1
    )


def test_an_own_pattern_that_takes_for_ever_is_given_up_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "PATTERN_SECONDS", 0.1)
    body = "a" * 60 + "!"
    assert redact(body, Secrets(patterns=(("nested", "(a+)+$"),)), {}) == Redacted(body)
    with pytest.raises(UsageError, match="'slow'") as caught:
        redact(body, Secrets(patterns=(("quick", "b"), ("slow", "(a|aa)+$"))), {})
    assert caught.value.rule == "policy"
    assert body not in caught.value.message


def test_finds_that_overlap_are_one_secret() -> None:
    secrets = Secrets(patterns=(("part", "IOSF"), ("more", "EXAMPLE and")))
    assert redact("AKIAIOSFODNN7EXAMPLE and", secrets, {}) == Redacted("[redacted: AWS Access Key]", 1)


def test_switched_off_nothing_is_looked_for() -> None:
    body = "AKIAIOSFODNN7EXAMPLE CUST-1"
    assert redact(body, Secrets(False, ("*_X",), (("c", "CUST-1"),)), {"A_X": "CUST-1"}) == Redacted(body)


# The detectors

EXPRESSIONS = [
    pytest.param(expression, id=f"{kind} {n}") for kind, one in detector.detectors() for n, expression in enumerate(one.denylist)
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_whatever_fits_a_detector_has_a_hint(expression: re.Pattern[str]) -> None:
    @settings(
        max_examples=30,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        phases=[Phase.generate],
    )
    @given(st.from_regex(expression))
    def look(words: str) -> None:
        # A detector is asked line by line.
        for line in words.split("\n"):
            if expression.search(line):
                assert redaction.hints(line), line

    look()


@pytest.mark.parametrize("number", range(len(redaction._SHAPES)))
def test_a_shape_fits_nothing_without_one_of_its_words(number: int) -> None:
    shape = redaction._SHAPES[number]
    expression = re.compile(shape.expression, shape.flags)
    fitted = 0

    @settings(
        max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], phases=[Phase.generate],
    )  # fmt: skip
    @given(st.from_regex(expression))
    def look(words: str) -> None:
        nonlocal fitted
        for found in expression.finditer(words):
            fitted += 1
            assert any(word in text.folded(found[0]) for word in shape.words), found[0]

    look()
    assert fitted


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["api_key", "PASSWORD", "db_pass", "contraseña", "client-secret", "pwd"]),
    st.sampled_from([" = ", ": ", " == ", "=> ", "] = "]),
    st.sampled_from("\"'`"),
    st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=5, max_size=12),
)
def test_whatever_stands_beside_a_word_has_a_hint(word: str, sign: str, quote: str, value: str) -> None:
    line = f"my {word}{sign}{quote}{value}{quote};"
    if any(span.kind == "Secret Keyword" for span in detector.find(line)):
        assert redaction.hints(line)


def test_every_detector_is_used_or_left_out_on_purpose() -> None:
    folder = Path(detect_secrets.plugins.__file__ or "").parent
    known = {path.stem for path in folder.glob("*.py")} - {"__init__", "base"}
    assert known == {*detector.PLUGINS, *detector.LEFT_OUT}


@pytest.mark.parametrize(
    "unit",
    [
        "password ",
        "a:b@://x:y",
        "'",
        "key='",
        "token=a1",
        "token=a1(",
        "token-",
        "PASSWORD=",
        "password='a ",
        "bearer a1",
        "cookie:a=",
        "cookie:a=b; ",
        "cookie:a=$",
        "config.a=password=a1.",
        "eyJ",
        "x",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    """A line is looked at in windows: doubled, it takes twice the time and not four times."""
    import time

    def seconds(length: int) -> float:
        body = (unit * length)[:length]
        begun = time.process_time()
        redact(body, ALWAYS, {})
        return time.process_time() - begun

    seconds(100)
    assert seconds(64_000) < 12 * max(seconds(16_000), 0.02)


def test_a_secret_where_two_windows_meet_is_found_once() -> None:
    for place in range(detector.WINDOW - 60, detector.WINDOW + 60, 7):
        body = f"{'x ' * (place // 2)}ghp_{'a1B2' * 9}{' y' * 2_000}"
        assert redact(body, ALWAYS, {}).taken == 1, place


def test_a_send_without_a_hint_loads_no_detector() -> None:
    code = (
        "import sys; from turnpost.redaction import Secrets, redact;"
        "redact('the tests fail on main, please look at src/app/main2.py', Secrets());"
        "redact('see commit 8f14e45fceea167a5a36dedd4bea2543f6f1d0aa: it is red', Secrets());"
        "assert not {'requests', 'detect_secrets', 'turnpost.detector'} & set(sys.modules), 'loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# In a message


def test_a_secret_is_stored_nowhere_and_sender_and_reader_are_told_how_many(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    sent = sending.send(
        home.root, ["alpha"], "use AKIAIOSFODNN7EXAMPLE", kind="question", speaker=PERSON,
        options=["glpat-abcdefghij0123456789", "no"], refs=["https://example.org/?token=s3cret789x"],
    )  # fmt: skip
    assert sent.redacted == 3
    shown = receipts.show(home.root, sent.id)
    assert (shown.body, shown.redacted) == ("use [redacted: AWS Access Key]", 3)
    assert shown.options == ("[redacted: GitLab Token]", "no")
    assert shown.refs == ("https://example.org/?token=[redacted: Secret Keyword]",)
    (block,) = home.claim(alpha)
    assert "[redacted: AWS Access Key]" in block
    everything = b"".join(path.read_bytes() for path in Path(home.root).rglob("*") if path.is_file())
    assert not re.search(rb"AKIAIOSFODNN7EXAMPLE|glpat-|s3cret789x", everything)


def test_the_policy_switches_it_off(home: FakeHome) -> None:
    home.agent("alpha")
    home.policy("[secrets]\nredact = false\n")
    sent = sending.send(home.root, ["alpha"], "use AKIAIOSFODNN7EXAMPLE", speaker=PERSON)
    assert sent.redacted == 0
    assert receipts.show(home.root, sent.id).body == "use AKIAIOSFODNN7EXAMPLE"


def test_the_policy_names_variables_and_patterns(home: FakeHome, monkeypatch: pytest.MonkeyPatch) -> None:
    home.agent("alpha")
    home.policy('[secrets]\nvariables = ["DEPLOY_*"]\n[secrets.patterns]\ncustomer = "CUST-[0-9]+"\n')
    monkeypatch.setenv("DEPLOY_KEYWORD", "open sesame")
    sent = sending.send(home.root, ["alpha"], "say open sesame to CUST-7", speaker=PERSON)
    assert receipts.show(home.root, sent.id).body == "say [redacted: DEPLOY_KEYWORD] to [redacted: customer]"
    assert sent.redacted == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ('[secrets]\npatterns = {x = "("}', "no regular expression"),
        ('[secrets]\npatterns = {x = "y*"}', "fits an empty text"),
        ('[secrets]\npatterns = {"a]b" = "y"}', "pattern"),
        ('[secrets]\nvariables = ["*"]', "every value of the environment"),
        ('[secrets]\nvariables = ["A B"]', "pattern"),
        ('[secrets]\nredact = "no"', "boolean"),
        ("[secrets]\nredcat = false", "redcat"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused_with_its_place(
    home: FakeHome, words: str, why: str
) -> None:
    home.policy(words)
    with pytest.raises(UsageError, match=why) as caught:
        policy.load(home.root)
    assert caught.value.rule == "policy"
    assert "secrets" in caught.value.message


def test_what_grows_by_it_over_the_limit_is_refused(home: FakeHome) -> None:
    home.agent("alpha")
    home.policy('[secrets.patterns]\nquite-a-long-kind = "q"\n')
    with pytest.raises(Exception, match="too-long"):
        sending.send(home.root, ["alpha"], "q " * 3_000, speaker=PERSON)


def test_the_reason_of_an_abort_goes_out_without_secrets(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    home.team(alpha, name="trip")
    missions.abort(home.root, "trip", "AKIAIOSFODNN7EXAMPLE leaked", speaker=PERSON)
    (name,) = home.box(alpha).waiting()
    notice: Any = mailbox.load_message(home.root, mailbox.entry_id(name))
    assert "[redacted: AWS Access Key] leaked" in notice["body"]


OWN = '[secrets.patterns]\ncustomer = "CUST[0-9]{6}"\n'
NAMES = [f"ghp_{'a1B2' * 9}", "CUST123456"]


def written(home: FakeHome) -> bytes:
    return b"".join(path.read_bytes() for path in Path(home.root).rglob("*") if path.is_file())


@pytest.mark.parametrize("secret", NAMES)
def test_a_thread_is_not_named_by_a_secret(home: FakeHome, secret: str) -> None:
    home.agent("alpha")
    home.policy(OWN)
    before = home.tree()
    with pytest.raises(UsageError) as caught:
        sending.send(home.root, ["alpha"], "x", thread=f"about {secret}", speaker=PERSON)
    assert caught.value.rule == "bad-thread"
    assert secret not in caught.value.message
    assert home.tree() == before
    assert secret.encode() not in written(home)


@pytest.mark.parametrize("secret", NAMES)
@pytest.mark.parametrize("speaker", [PERSON, FOREIGN])
def test_a_mission_and_an_agent_are_not_named_by_a_secret(
    home: FakeHome, secret: str, speaker: Speaker
) -> None:
    home.agent("alpha")
    home.policy(OWN)
    before = home.tree()
    for name_it in (
        lambda: missions.start(home.root, secret, speaker=speaker),
        lambda: missions.start(home.root, f"no name {secret}", speaker=speaker),
        lambda: launching.launch(home.root, secret, speaker=speaker),
        lambda: agents.rename(home.root, "alpha", secret, speaker=speaker),
    ):
        with pytest.raises(UsageError) as caught:
            name_it()
        assert caught.value.rule == "name"
        assert secret not in caught.value.message
    assert home.tree() == before
    assert secret.encode() not in written(home)


def test_a_missions_goal_and_the_reason_of_its_end_are_counted(home: FakeHome) -> None:
    home.policy(OWN)
    made = missions.start(home.root, "m1", "AKIAIOSFODNN7EXAMPLE for CUST123456", speaker=PERSON)
    assert (made.goal, made.redacted) == ("[redacted: AWS Access Key] for [redacted: customer]", 2)
    assert missions.show(home.root, "m1").goal == made.goal
    ended = missions.finish(home.root, "m1", "CUST123456 has it", speaker=PERSON)
    assert (ended.reason, ended.redacted) == ("[redacted: customer] has it", 1)
    assert not re.search(rb"AKIAIOSFODNN7EXAMPLE|CUST123456", written(home).replace(OWN.encode(), b""))


def test_options_that_become_the_same_text_are_refused(home: FakeHome) -> None:
    home.agent("alpha")
    before = home.tree()
    options = ["AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLF"]
    with pytest.raises(UsageError, match="without their secrets") as caught:
        sending.send(home.root, ["alpha"], "which?", kind="question", options=options, speaker=PERSON)
    assert caught.value.rule == "bad-option"
    assert "AKIA" not in caught.value.message
    assert home.tree() == before


def test_a_wake_counts_too(home: FakeHome) -> None:
    home.agent("alpha", "stopped")
    woken = holding.wake(home.root, "alpha", "use AKIAIOSFODNN7EXAMPLE", speaker=PERSON)
    assert woken.sent is not None
    assert woken.sent.redacted == 1
