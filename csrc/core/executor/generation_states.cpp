#include "core/executor/generation_states.h"

namespace deft {

GenerationStates::GenerationStates(const Schedule& schedule, std::size_t buckets,
                                   std::int32_t buffers)
    : schedule_(&schedule),
      buffers_(static_cast<std::size_t>(buffers)),
      states_(buckets * buffers_) {}

std::size_t GenerationStates::place_of(Instance instance) const {
  return static_cast<std::size_t>(schedule_->bucket_of(instance)) * buffers_ +
         static_cast<std::size_t>(schedule_->buffer(instance));
}

const GenerationState& GenerationStates::at_buffer_of(Instance instance) const {
  return states_[place_of(instance)];
}

const GenerationState* GenerationStates::find(Instance instance) const {
  const GenerationState& state = states_[place_of(instance)];
  return state.number == schedule_->number(instance) ? &state : nullptr;
}

GenerationState* GenerationStates::find(Instance instance) {
  GenerationState& state = states_[place_of(instance)];
  return state.number == schedule_->number(instance) ? &state : nullptr;
}

void GenerationStates::begin(Instance instance) {
  GenerationState& state = states_[place_of(instance)];
  state = GenerationState{};
  state.number = schedule_->number(instance);
  state.progress = Progress::kCollecting;
  state.released = false;
}

bool GenerationStates::is_reduced(Instance instance) const {
  const GenerationState& state = at_buffer_of(instance);
  const std::int64_t number = schedule_->number(instance);
  return state.number > number || (state.number == number && state.progress == Progress::kReduced);
}

bool GenerationStates::is_released(Instance instance) const {
  const GenerationState& state = at_buffer_of(instance);
  const std::int64_t number = schedule_->number(instance);
  return state.number > number || (state.number == number && state.released);
}

}  // namespace deft
