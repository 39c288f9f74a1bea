module example.org/read

go 1.26.0
