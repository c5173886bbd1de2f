#include "distributed/wire/bytes.h"

#include <iterator>
#include <utility>

namespace headrace::distributed {

Bytes::Bytes(std::string text) { Append(std::move(text)); }

void Bytes::Append(Piece piece) {
  if (piece.size == 0) return;
  size_ += piece.size;
  pieces_.push_back(std::move(piece));
}

void Bytes::Append(std::string text) {
  const auto owner = std::make_shared<const std::string>(std::move(text));
  Append(Piece{owner, owner->data(), owner->size()});
}

void Bytes::Append(Bytes bytes) {
  size_ += bytes.size_;
  pieces_.insert(pieces_.end(), std::make_move_iterator(bytes.pieces_.begin()),
                 std::make_move_iterator(bytes.pieces_.end()));
}

std::string Bytes::Flat() const {
  std::string all;
  all.reserve(size_);
  for (const Piece& piece : pieces_) all.append(piece.data, piece.size);
  return all;
}

}  // namespace headrace::distributed
