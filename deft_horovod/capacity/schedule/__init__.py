"""Methods that place jobs on own and rented machines before their deadlines."""
