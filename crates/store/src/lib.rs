//! The user's files: catalogs, model directories, settings.
