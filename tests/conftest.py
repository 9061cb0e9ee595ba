import signal


def pytest_configure():
    """Tests interrupt what they start, and whoever starts the tests may ignore interrupts: a shell
    does so for what it runs in the background, and children inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
