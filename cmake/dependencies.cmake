# Every outside library, found once; docs/dependencies.md says why each is here.
# Installed with the package too, whose static library needs them all.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
# WebP files are refused where it is not there.
find_library(HR_LIB_webp webp)
find_library(HR_LIB_webpdemux webpdemux)
find_package(leveldb REQUIRED)
find_package(dnnl REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
if(HR_TESTS)
  find_package(GTest REQUIRED)
endif()
if(HR_SERVING)
  pkg_check_modules(libevent REQUIRED IMPORTED_TARGET libevent)
  find_package(OpenSSL 3 REQUIRED)
  # By name: gRPC's own package file looks for the development files of all that
  # it stands on.
  set(HR_GRPC)
  foreach(name grpc++ grpc gpr)
    find_library(HR_LIB_${name} ${name} REQUIRED)
    list(APPEND HR_GRPC ${HR_LIB_${name}})
  endforeach()
endif()
