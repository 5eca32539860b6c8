"""Threads that execute functions, methods, and what has no name of its own: each tells which function."""

import functools
def told(function): sys.stdout.write(f"executes {threading.get_native_id()} {getattr(function, '__qualname__', function.__name__)}\n")
def work(*_): told(work)
class Job:
    def do(self): told(Job.do)
class Own(threading.Thread):
    def run(self): told(Own.run)
class Later(Own): pass
partial = functools.partial(work)
partial.__name__ = "?"
targets = [work, Job().do, lambda: told(targets[2])]
threads = [threading.Thread(target=target) for target in targets] + [Own(), Later()]
threads += [threading.Thread(target=functools.partial(told, partial))]
for t in threads: t.start()
for t in threads: t.join()
