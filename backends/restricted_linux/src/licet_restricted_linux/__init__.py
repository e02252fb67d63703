"""CPython held by the Linux kernel: every run in namespaces of its own, with a root that shows what is opened."""
