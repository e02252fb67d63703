"""CPython held by the Linux kernel: every run in namespaces of its own, which show what is opened."""
