"""Keys that open nothing, put together here so that no line of a file looks like one."""

from __future__ import annotations

_MIXED = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3vW5xY7zA9bC1dE3fG5hJ7kL9mN1pQ3r"
_LINES = "\n".join(["MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfnygWyF0qP1Zz5vYzJ8sXk2aBcDeFgHiJkL"] * 6)

KEYS = {
    "aws_access_key": "AKIA" + "QYLPMN5HFIQR7XYA",
    "github_token": "ghp_" + _MIXED[:36],
    "slack_token": "xoxb-" + "123456789012-1234567890123-abcdefghijklmnopqrstuvwx",
    "stripe_key": "sk_live_" + _MIXED[:24],
    "anthropic_key": "sk-ant-api03-" + _MIXED[:93] + "AA",
    "openai_key": "sk-proj-" + _MIXED[:74] + "T3Blbk" + "FJ" + _MIXED[:74],
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + _MIXED[:43],
    "private_key": f"-----BEGIN RSA PRIVATE {'KEY'}-----\n{_LINES}\n-----END RSA PRIVATE {'KEY'}-----",
    "gcp_api_key": "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "gitlab_pat": "glpat-" + "x7Qz9LmP3kW8vN2rT5yB",
}
"""By kind: the first eight are known by shape, the others by rules of the detector alone."""
