// What a BoundFunction may be asked besides.
#pragma once

namespace headrace {

class ReadsFiles {
 public:
  virtual ~ReadsFiles() = default;
  // Some op of the function reads files.
  virtual bool reads_files() const = 0;
};

}  // namespace headrace
