"""What all tests share."""

import signal

# A shell starts background jobs with Ctrl-C ignored, and every child inherits that: the tests that send it would wait.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
