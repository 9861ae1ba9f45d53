#include "base/error.h"

namespace t5x {

void Error::add_context(std::string place) {
  context_.push_back(std::move(place));
  compose();
}

void Error::compose() {
  text_ = message_;
  for (const std::string& place : context_) text_ += "\n  in " + place;
}

}  // namespace t5x
