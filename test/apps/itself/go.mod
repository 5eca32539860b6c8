module itself

go 1.19
