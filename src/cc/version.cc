#include "headrace/version.h"

#define HR_TEXT_INNER(x) #x
#define HR_TEXT(x) HR_TEXT_INNER(x)

namespace headrace {

const char* Version() {
  return HR_TEXT(HR_VERSION_MAJOR) "." HR_TEXT(HR_VERSION_MINOR) "." HR_TEXT(
      HR_VERSION_PATCH);
}

}  // namespace headrace
