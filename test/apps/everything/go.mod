module everything

go 1.19
