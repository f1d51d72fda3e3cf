export function open(section, parameters) {
}

export function close() {
}
