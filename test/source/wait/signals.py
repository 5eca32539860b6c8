# Waits for four signals, and prints them.
import signal, time
got = []
for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH):
    signal.signal(number, lambda its, _: got.append(its))
print("ready", flush=True)
while len(got) < 4: time.sleep(0.01)
print(*got)
