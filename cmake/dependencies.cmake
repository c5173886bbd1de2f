# Every outside library, found once; docs/dependencies.md says why each is here.
# Installed with the package too, whose static library needs them all.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(ZLIB REQUIRED)
find_package(leveldb REQUIRED)
find_package(dnnl REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
if(HR_TESTS)
  find_package(GTest REQUIRED)
endif()
