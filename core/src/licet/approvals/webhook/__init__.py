"""Asking by a webhook: a server is told of an approval by a signed request, and gives back signed answers.

- `signing`: requests are signed as the Standard Webhooks specification says;
- `receiver`: one exchange with the server, and what its answer comes to;
- `service`: asking, with its pauses and its end.
"""
