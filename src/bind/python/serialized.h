// Protos as bytes of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace headrace::bind {

template <typename Proto>
nanobind::bytes Serialized(const Proto& proto) {
  std::string bytes;
  // Sizes are ints to protobuf.
  if (!proto.SerializeToString(&bytes)) {
    throw nanobind::value_error("the proto is larger than 2 GiB");
  }
  return nanobind::bytes(bytes.data(), bytes.size());
}

}  // namespace headrace::bind
