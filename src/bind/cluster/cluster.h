// Servers and sessions of clusters.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

void AddCluster(nanobind::module_& m);
// Parts of it.
void AddRemoteContext(nanobind::module_& m);
void AddDataService(nanobind::module_& m);

}  // namespace headrace::bind
