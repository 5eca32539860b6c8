"""A read waits for more than a second, the length of a generation: one ends meanwhile."""

ends = os.pipe()
def write():
    time.sleep(1.3)
    os.write(ends[1], b"x")
threading.Thread(target=write).start()
def read(): return os.read(ends[0], int(tell(1)))
read()
