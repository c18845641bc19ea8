# SPDX-License-Identifier: Apache-2.0
"""Every key here is made up, and spelt in two parts so that no scanner takes it for a real one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.audit.secrets import MASK, mask
from envkit.audit.text import shown

SECRETS = [
    ("sk-" + "ant-api03-" + "A1b2" * 8, "Anthropic"),
    ("sk-" + "proj-" + "A1b2" * 8, "OpenAI"),
    ("ghp_" + "A1b2" * 9, "GitHub"),
    ("github_pat_" + "A1b2" * 9, "GitHub fine-grained"),
    ("glpat-" + "A1b2" * 5, "GitLab"),
    ("xoxb-" + "123456789012-abcdef", "Slack"),
    ("AKIA" + "ABCDEFGHIJKLMNOP", "AWS id"),
    ("AIza" + "A1b2" * 9, "Google"),
    ("hf_" + "A1b2" * 8, "Hugging Face"),
    ("npm_" + "A1b2" * 9, "npm"),
    ("eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxIn0." + "c2lnbmF0dXJl", "JWT"),
]


@pytest.mark.parametrize("secret", [row[0] for row in SECRETS], ids=[row[1] for row in SECRETS])
@pytest.mark.parametrize("around", ["{}", "key {} used", '{{"token":"{}"}}', "?k={}&x=1", "({})"])
def test_keys_are_masked_wherever_they_stand(secret: str, around: str) -> None:
    masked = mask(around.format(secret))
    assert secret not in masked
    assert MASK in masked


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("Authorization: Bearer abcdef1234567890", "abcdef1234567890"),
        ("authorization: basic dXNlcjpwYXNzMQ==", "dXNlcjpwYXNzMQ"),
        ("postgres://user:s3cretpw@db/x", "s3cretpw"),
        ("https://ci:t0kenvalue@example.org/a.git", "t0kenvalue"),
        ("password = hunter2222", "hunter2222"),
        ('"api_key": "abcd-efgh-ijkl"', "abcd-efgh-ijkl"),
        ('{\\"client_secret\\": \\"abcdefgh\\"}', "abcdefgh"),
        ("AWS_SECRET_ACCESS_KEY=abcd/efgh+ijkl", "abcd/efgh+ijkl"),
        ("https://s3/x?X-Amz-Signature=0123456789abcdef", "0123456789abcdef"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEcut", "MIIEcut"),
    ],
)
def test_credentials_are_masked_by_where_they_stand(text: str, hidden: str) -> None:
    assert hidden not in mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "Required: file_path, tab_index",
        "the secret of the trade is patience",
        "password: null",
        "max_tokens: 1024",
        "task-51234567890123456789",
        "https://example.org/a/b?page=2",
        "a risk-averse token bucket",
        "holders of bearer securities and basic understanding",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert mask(text) == text


def test_a_secret_is_masked_before_the_text_is_cut() -> None:
    text = "x" * 280 + " " + "ghp_" + "A1b2" * 9
    assert "ghp_" not in shown(text)


def test_half_a_secret_at_the_window_is_dropped() -> None:
    text = "y " * 1990 + "z" * 5 + " ghp_" + "A1b2" * 9
    assert "ghp_" not in shown(text, 5000)


@given(st.text(max_size=300))
def test_masking_twice_changes_nothing(text: str) -> None:
    assert mask(mask(text)) == mask(text)
