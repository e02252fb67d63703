"""Whether a text is worth the work of a detector: a quick look that most output ends with.

Rules this module keeps:

- it may call a harmless text suspicious, but what it calls plain holds no key of any usual form;
- it takes time in proportion to the text, whatever the text is.
"""

from __future__ import annotations

import re

_WORDS = re.compile("|".join((
    "passw", "passphrase", "pwd", "secret", "token", "credential", "private", "authorization", "bearer",
    "apikey", "api_key", "api-key", "accesskey", "access_key", "access-key",
    "authkey", "auth_key", "auth-key", "accountkey", "account_key", "account-key",
    "signingkey", "signing_key", "signing-key", "xox", "xapp", "akia", "abia", "acca",
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "sk-ant-", "eyj",
    "sk_live_", "sk_test_", "rk_live_", "rk_test_", "hf_", "api_org_",
    "airtable", "asana", "contribsys", "curl", "discord",
)))  # fmt: skip
"""Names and beginnings by which secrets are known that are short, all of one case, or digits alone."""

_RUN = re.compile(
    r"(?<![\w+/=\-])(?=[\w+/=\-]{14})(?=[\w+/=\-]*[A-Za-z])(?=[\w+/=\-]*(?:\d|[a-z][A-Z]))", re.ASCII
)
"""Fourteen characters of a key in a row, letters of both cases or with a digit; each run is read twice."""


def plain(text: str) -> bool:
    """Whether nothing in `text` looks like a secret."""
    if len(text) < 8:
        return True
    lower = text.lower()
    if _WORDS.search(lower) or ("://" in lower and "@" in lower) or "ASIA" in text:
        return False
    return _RUN.search(text) is None
