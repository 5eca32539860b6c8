"""Twenty threads wait far down their stacks when the interpreter ends."""

ends = os.pipe()
def deep(n): deep(n - 1) if n else os.read(ends[0], 1)
def made(i):
    own = {"deep": deep}
    exec(compile("def made(): deep(20)", f"{i}.py", "exec"), own)
    own["made"]()
threads = [threading.Thread(target=made, args=(i,), daemon=True) for i in range(20)]
for thread in threads: thread.start()
def reads(thread):
    with open(f"/proc/self/task/{thread.native_id}/syscall") as file: return file.read().split()[1:2] == [hex(ends[0])]
while not all(map(reads, threads)): time.sleep(0.01)
