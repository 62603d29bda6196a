exports.lower = (text) => text.toLowerCase()
