// HR_API marks what leaves libheadrace: every class or function of the public
// headers that is defined in the library. All else is hidden, so that the
// library can share a process with TensorFlow or other copies of what it uses.
#pragma once

#define HR_API __attribute__((visibility("default")))
