// What travels between tasks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace headrace::distributed {

// Bytes in pieces, so that the buffers of tensors leave, and come, without
// being copied into one message.
class Bytes {
 public:
  struct Piece {
    std::shared_ptr<const void> owner;  // keeps the data alive
    const char* data = nullptr;
    size_t size = 0;
  };

  Bytes() = default;
  explicit Bytes(std::string text);

  // Nothing where it is empty.
  void Append(Piece piece);
  void Append(std::string text);
  void Append(Bytes bytes);
  size_t size() const { return size_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  // All in one string.
  std::string Flat() const;

 private:
  std::vector<Piece> pieces_;
  size_t size_ = 0;
};

}  // namespace headrace::distributed
