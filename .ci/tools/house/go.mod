module github.com/united-workforce/uwf/ci/house

go 1.26.0
