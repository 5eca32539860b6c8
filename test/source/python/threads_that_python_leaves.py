"""Twenty threads wait far down their stacks when the interpreter ends."""

ends = os.pipe()
def deep(n): deep(n - 1) if n else os.read(ends[0], 1)
def made(i):
    own = {"deep": deep}
    exec(compile("def made(): deep(20)", f"{i}.py", "exec"), own)
    own["made"]()
for i in range(20): threading.Thread(target=made, args=(i,), daemon=True).start()
time.sleep(0.2)
