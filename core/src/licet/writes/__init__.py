"""What code reads and writes of the host's files: a view while it runs, a commit when it ended well.

`view` shows a run the files that its plan opens, under its own changes; `staged` is what a backend hands over
at the end, this view's or that of a kernel; `commit` brings it to the host, all of it or nothing.
"""
