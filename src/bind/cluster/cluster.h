// Servers and sessions of clusters.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

void AddCluster(nanobind::module_& m);
// A part of it.
void AddDataService(nanobind::module_& m);

}  // namespace headrace::bind
