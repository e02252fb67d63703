"""Walls of the Linux kernel, each put up by one function round the process that calls it.

This text is put before the code of a run (`walls`), so that what is tested is the kernel's own refusal and
not somebody's word. It needs nothing but the standard library.
"""

import ctypes
import fcntl
import os
import platform
import resource
import select
import socket
import struct
import subprocess
import threading

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_ARM = platform.machine() == "aarch64"
_EXEC = (221, 281) if _ARM else (59, 322)  # execve, execveat
_SOCKET = 198 if _ARM else 41
_UNSHARE = 97 if _ARM else 272
_IO_URING = 425
_NEW_USER, _NEW_NET, _NEW_MOUNTS = 0x10000000, 0x40000000, 0x00020000


def no_programs():
    """No other program is started."""
    _refuse(*_EXEC)


def no_sockets_of_the_host():
    """No socket of the family AF_UNIX is made."""
    _refuse(_SOCKET, first_argument=1)


def no_risky_calls():
    """No ring and no namespace is made."""
    _refuse(_IO_URING, _UNSHARE)


def no_new_privileges():
    """No setuid program gives rights, and those of root are gone."""
    _call(_LIBRARY.prctl(38, 1, 0, 0, 0))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresuid(61234, 61234, 61234)


def few_processes(most):
    """This user, whom nobody else is, has so many processes at most."""
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    os.setresuid(61235, 61235, 61235)


def own_network():
    """A network without interfaces that are up."""
    _unshare(_NEW_NET)


def network_that_leads_out():
    """A network of its own with another loopback, and a way out through the host (needs `ip`)."""
    pid = os.getpid()
    net = f"10.213.{pid >> 6 & 255}.{(pid & 63) * 4}"
    ours, theirs = (net[: net.rindex(".") + 1] + str((pid & 63) * 4 + number) for number in (1, 2))
    go, tell = os.pipe()
    helper = os.fork()
    if helper == 0:  # which stays outside
        os.read(go, 1)
        _ip(f"link add licet{pid} type veth peer name out netns {pid}")
        _ip(f"address add {ours}/30 dev licet{pid}")
        _ip(f"link set licet{pid} up")
        os._exit(0)
    _unshare(_NEW_NET)
    os.write(tell, b"x")
    os.waitpid(helper, 0)
    for line in (f"address add {theirs}/30 dev out", "link set out up", f"route add default via {ours}"):
        _ip(line)


def _ip(line):
    subprocess.run(["ip", *line.split()], check=True)


def network_that_leads_to(ports):
    """A network of its own, of whose 127.0.0.1 these ports alone are those of the host."""
    here, outside = socket.socketpair()
    if os.fork() == 0:  # who stays outside, and goes with the code
        here.close()
        os.closerange(0, 3)
        _, given, _, _ = socket.recv_fds(outside, 1, len(ports))
        _relay(outside, [socket.socket(fileno=number) for number in given])
        os._exit(0)
    _unshare(_NEW_NET)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH22x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
    listeners = [socket.create_server(("127.0.0.1", port)) for port in ports]
    socket.send_fds(here, [b"x"], [listener.fileno() for listener in listeners])
    here.detach()  # it stays open as long as the code runs


def _relay(over, listeners):
    while True:
        ready, _, _ = select.select([over, *listeners], [], [])
        if over in ready:
            return
        for listener in ready:
            inner, outer = listener.accept()[0], socket.create_connection(listener.getsockname())
            for pair in ((inner, outer), (outer, inner)):
                threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source, sink):
    while data := source.recv(1 << 16):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


def small_disk(folder, size):
    """`folder` is a file system in memory of `size` bytes."""
    _unshare(_NEW_MOUNTS)
    _mount(b"licet", folder.encode(), b"tmpfs", 0, f"size={size}".encode())


def own_temporary_folder(kept):
    """`/tmp` is another one but for `kept`, and all else is the host's."""
    _unshare(_NEW_MOUNTS)
    held = os.open(kept, os.O_PATH)
    _mount(b"licet", b"/tmp", b"tmpfs", 0, None)
    os.makedirs(kept)
    _mount(f"/proc/self/fd/{held}".encode(), kept.encode(), None, 0x1000, None)
    os.close(held)
    os.chdir(kept)


def another_boot_id(folder):
    """The kernel looks like another one. It is a lie, since nothing here has a second kernel."""
    _unshare(_NEW_MOUNTS)
    path = f"{folder}/boot_id"
    with open(path, "w") as file:
        file.write("00000000-0000-0000-0000-000000000000\n")
    _mount(path.encode(), b"/proc/sys/kernel/random/boot_id", None, 0x1000, None)


def files(readable, writable):
    """Files are read and written below these folders alone (Landlock)."""
    read, write = 0b1101, 0b1111111110010  # execute, read; write, remove, make, truncate is ABI 3
    ruleset = _ruleset(struct.pack("<Q", read | write))
    for folder, rights in (*((f, read) for f in readable), *((f, read | write) for f in writable)):
        descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        _call(_LIBRARY.syscall(445, ruleset, 1, struct.pack("<Qi", rights, descriptor), 0))
        os.close(descriptor)
    _enter(ruleset)


def ports(allowed):
    """TCP connections go to these ports alone (Landlock)."""
    connect = 0b10
    ruleset = _ruleset(struct.pack("<QQ", 0, connect))
    for port in allowed:
        _call(_LIBRARY.syscall(445, ruleset, 2, struct.pack("<QQ", connect, port), 0))
    _enter(ruleset)


def _ruleset(attributes):
    return _call(_LIBRARY.syscall(444, attributes, len(attributes), 0))


def _enter(ruleset):
    _call(_LIBRARY.prctl(38, 1, 0, 0, 0))
    _call(_LIBRARY.syscall(446, ruleset, 0))
    os.close(ruleset)


def _refuse(*numbers, first_argument=None):
    """Refuse system calls with EPERM by a filter (seccomp)."""
    load, equal, give, allow, refuse = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050001
    lines = []
    for number in numbers:
        test = [(load, 0, 0, 0), (equal, 0, 1 if first_argument is None else 3, number)]
        if first_argument is not None:
            test += [(load, 0, 0, 16), (equal, 0, 1, first_argument)]
        lines += [*test, (give, 0, 0, refuse)]
    text = b"".join(struct.pack("<HBBI", *line) for line in (*lines, (give, 0, 0, allow)))
    kept = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("<H6xQ", len(text) // 8, ctypes.addressof(kept))
    _call(_LIBRARY.prctl(38, 1, 0, 0, 0))
    _call(_LIBRARY.prctl(22, 2, ctypes.create_string_buffer(program, len(program)), 0, 0))


def _unshare(what):
    """A namespace of its own; without rights, one in which it seems to have them."""
    _call(_LIBRARY.unshare(what if os.geteuid() == 0 else what | _NEW_USER))
    if what == _NEW_MOUNTS:
        _mount(None, b"/", None, 0x44000, None)  # what is mounted here is seen here alone


def _mount(source, target, kind, flags, options):
    _call(_LIBRARY.mount(source, target, kind, ctypes.c_ulong(flags), options))


def _call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
