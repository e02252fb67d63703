"""Connections for code that has no network: it calls `connect`, and its host answers (Linux).

- `listener`: questions of the kernel, and answers to them; `caller`: who asks, and by which socket;
- `address`: where to; `names` and `dns`: what stands for names inside;
- `gate`: all of it, for one run; `standing`: what this host lacks for it.

Code behind the filter of system calls for a `network` makes TCP sockets in a network namespace without a way
out. Its `connect` is never executed: the kernel asks whoever has the listener, who decides by the name or
address, connects in its own namespace, and puts the connected socket in the place of the code's own.
"""
