// How the data service divides a dataset, as upstream numbers it.
#pragma once

namespace headrace::distributed::data_service {

enum Policy {
  kOff = 0,
  kDynamic = 1,
  kFile = 2,
  kData = 3,
  kFileOrData = 4,
  kHint = 5
};

}  // namespace headrace::distributed::data_service
