module github.com/united-workforce/uwf/ci/screens

go 1.26.0
