"""Threads that get their names in all ways that threading knows: each tells its name."""

from concurrent.futures import ThreadPoolExecutor
def work(): sys.stdout.write(f"named {threading.get_native_id()} {threading.current_thread().name.encode().hex()}\n")
class Named(threading.Thread):
    def __init__(self): super().__init__(name="größe 日本 𐐨")
    def run(self): work()
class Slotted(Named):
    __slots__ = ("a", "b")
class Many(Named):
    def __init__(self):
        super().__init__()
        for i in range(100): setattr(self, f"a{i}", i)
class Restarts(Named):
    def start(self):
        self.name = "renamed"
        super().start()
looked_at = Named()
looked_at.__dict__
named_late = threading.Thread(target=work)
named_late.name = "late"
replaced = threading.Thread(target=work, name="before")
replaced.__dict__ = dict(replaced.__dict__, _name="replaced")
threads = [threading.Thread(target=work, name=f"worker number {i} of many") for i in range(3)]
threads += [threading.Thread(target=work), threading.Thread(target=work, name="n" * 60), threading.Thread(target=work, name="")]
threads += [Named(), Slotted(), Many(), Restarts(), looked_at, named_late, replaced, threading.Timer(0, work)]
for t in threads: t.start()
with ThreadPoolExecutor(2, thread_name_prefix="pool") as pool: list(pool.map(lambda _: work(), range(20)))
for t in threads: t.join()
